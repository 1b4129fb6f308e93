"""From a split by rows to a split by columns, as sequence parallelism does before attention."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [tokens, world * cols], out: [world * tokens, cols], bfloat16."""
    world, tokens = dist.get_world_size(), inp.shape[0]
    parts = inp.reshape(tokens, world, -1).transpose(0, 1).contiguous()  # [world, tokens, cols]
    dist.all_to_all_single(out.view_as(parts), parts)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for tokens, cols in ((32, 64), (128, 128), (256, 256)):
        inp = torch.randn(tokens, world * cols, device="cuda").bfloat16()
        operation(inp, torch.empty(world * tokens, cols, dtype=inp.dtype, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
