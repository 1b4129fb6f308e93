"""Exchange of padded expert blocks: tokens and the names of their experts."""
import torch
import torch.distributed as dist


def operation(
    tokens: torch.Tensor, expert: torch.Tensor, out: torch.Tensor, out_expert: torch.Tensor
) -> None:
    """tokens, out: [world, slots, hidden], expert, out_expert: [world, slots]; int32."""
    dist.all_to_all_single(out, tokens)
    dist.all_to_all_single(out_expert, expert)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for slots in (8, 64):
        tokens = torch.randint(0, 2**31 - 1, (world, slots, 256), dtype=torch.int32, device="cuda")
        expert = torch.randint(0, 64, (world, slots), dtype=torch.int32, device="cuda")
        operation(tokens, expert, torch.empty_like(tokens), torch.empty_like(expert))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
