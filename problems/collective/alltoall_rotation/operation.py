"""All-to-all of equal chunks: chunk d of `inp` goes to rank d."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp, out: [world, 4 * quads], int32."""
    dist.all_to_all_single(out, inp)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for quads in (256, 2048):
        shape = (dist.get_world_size(), 4 * quads)
        inp = torch.randint(-(2**31), 2**31, shape, dtype=torch.int32, device="cuda")
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
